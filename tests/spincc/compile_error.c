int main(void) {
    int status = missing;
    return status;
}
