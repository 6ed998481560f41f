# Writes the bytes of FROM to TO as a C++ raw string literal of hexadecimal digits.
file(READ "${FROM}" digits HEX)
file(WRITE "${TO}" "R\"hex(${digits})hex\"\n")
