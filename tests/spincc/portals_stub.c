/* Stands in for libportals where a test examines only spincc's output. */
const void *stub_image, *stub_handlers_start;

void spin_register_image(const void *image, const void *handlers_start);

void spin_register_image(const void *image, const void *handlers_start) {
    stub_image = image;
    stub_handlers_start = handlers_start;
}
