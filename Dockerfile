# A CPU image with the command: docker build -t vcpo-bench . && docker run --rm -it vcpo-bench
FROM python:3.12-slim AS wheel
WORKDIR /source
COPY . .
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.12-slim
# PyTorch's own index has builds without CUDA; their version (2.13.0+cpu) counts as newer than that of the default one
RUN --mount=type=bind,from=wheel,source=/wheels,target=/wheels \
    pip install --no-cache-dir --extra-index-url https://download.pytorch.org/whl/cpu /wheels/*.whl \
    && useradd --create-home --uid 1000 bench
USER 1000
WORKDIR /home/bench
ENV OMP_NUM_THREADS=1
ENTRYPOINT ["vcpo-bench"]
CMD ["demo"]
