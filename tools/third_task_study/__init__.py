"""The phase law on a third task, whose responses differ in length: the phase study's rules, another plan."""
