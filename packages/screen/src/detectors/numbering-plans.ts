/** Country codes of ITU-T E.164 as of the Operational Bulletin of 1 May 2024. */
export const COUNTRY_CODES: ReadonlySet<string> = new Set(
  (
    '1 7 20 27 30 31 32 33 34 36 39 40 41 43 44 45 46 47 48 49 51 52 53 54 55 56 57 58 60 61 62 63 64 65 66 81 82 84 86 ' +
    '90 91 92 93 94 95 98 211 212 213 216 218 220 221 222 223 224 225 226 227 228 229 230 231 232 233 234 235 236 237 ' +
    '238 239 240 241 242 243 244 245 246 247 248 249 250 251 252 253 254 255 256 257 258 260 261 262 263 264 265 266 267 ' +
    '268 269 290 291 297 298 299 350 351 352 353 354 355 356 357 358 359 370 371 372 373 374 375 376 377 378 379 380 381 ' +
    '382 383 385 386 387 389 420 421 423 500 501 502 503 504 505 506 507 508 509 590 591 592 593 594 595 596 597 598 599 ' +
    '670 672 673 674 675 676 677 678 679 680 681 682 683 685 686 687 688 689 690 691 692 800 808 850 852 853 855 856 870 ' +
    '878 880 881 882 883 886 888 960 961 962 963 964 965 966 967 968 970 971 972 973 974 975 976 977 979 992 993 994 995 ' +
    '996 998'
  ).split(' '),
)

/**
 * First digits and lengths of payment card numbers, by brand: ISO/IEC 7812 ranges as the brands publish them,
 * June 2025.
 */
export const CARD_NUMBERS: readonly {
  readonly brand: string
  readonly first: string
  readonly last: string
  readonly lengths: readonly number[]
}[] = [
  { brand: 'Visa', first: '4', last: '4', lengths: [13, 16, 19] },
  { brand: 'Mastercard', first: '51', last: '55', lengths: [16] },
  { brand: 'Mastercard', first: '2221', last: '2720', lengths: [16] },
  { brand: 'American Express', first: '34', last: '34', lengths: [15] },
  { brand: 'American Express', first: '37', last: '37', lengths: [15] },
  { brand: 'Discover', first: '6011', last: '6011', lengths: [16, 19] },
  { brand: 'Discover', first: '644', last: '659', lengths: [16, 19] },
  { brand: 'Diners Club', first: '300', last: '305', lengths: [14, 16, 19] },
  { brand: 'Diners Club', first: '36', last: '36', lengths: [14, 16, 19] },
  { brand: 'Diners Club', first: '38', last: '39', lengths: [14, 16, 19] },
  { brand: 'JCB', first: '3528', last: '3589', lengths: [16, 19] },
  { brand: 'UnionPay', first: '62', last: '62', lengths: [16, 17, 18, 19] },
  { brand: 'UnionPay', first: '81', last: '81', lengths: [16, 17, 18, 19] },
  { brand: 'Maestro', first: '5018', last: '5020', lengths: [12, 13, 14, 15, 16, 17, 18, 19] },
  { brand: 'Maestro', first: '5893', last: '5893', lengths: [12, 13, 14, 15, 16, 17, 18, 19] },
  { brand: 'Maestro', first: '6304', last: '6304', lengths: [12, 13, 14, 15, 16, 17, 18, 19] },
  { brand: 'Maestro', first: '6759', last: '6763', lengths: [12, 13, 14, 15, 16, 17, 18, 19] },
  { brand: 'Mir', first: '2200', last: '2204', lengths: [16, 17, 18, 19] },
  { brand: 'RuPay', first: '60', last: '60', lengths: [16] },
  { brand: 'Troy', first: '9792', last: '9792', lengths: [16] },
]

/** Number of characters of an IBAN, by country: SWIFT, IBAN Registry, release 99 (December 2024). */
export const IBAN_LENGTHS: Readonly<Record<string, number>> = {
  AD: 24,
  AE: 23,
  AL: 28,
  AT: 20,
  AZ: 28,
  BA: 20,
  BE: 16,
  BG: 22,
  BH: 22,
  BI: 27,
  BR: 29,
  BY: 28,
  CH: 21,
  CR: 22,
  CY: 28,
  CZ: 24,
  DE: 22,
  DJ: 27,
  DK: 18,
  DO: 28,
  EE: 20,
  EG: 29,
  ES: 24,
  FI: 18,
  FK: 18,
  FO: 18,
  FR: 27,
  GB: 22,
  GE: 22,
  GI: 23,
  GL: 18,
  GR: 27,
  GT: 28,
  HN: 28,
  HR: 21,
  HU: 28,
  IE: 22,
  IL: 23,
  IQ: 23,
  IS: 26,
  IT: 27,
  JO: 30,
  KW: 30,
  KZ: 20,
  LB: 28,
  LC: 32,
  LI: 21,
  LT: 20,
  LU: 20,
  LV: 21,
  LY: 25,
  MC: 27,
  MD: 24,
  ME: 22,
  MK: 19,
  MN: 20,
  MR: 27,
  MT: 31,
  MU: 30,
  NI: 28,
  NL: 18,
  NO: 15,
  OM: 23,
  PK: 24,
  PL: 28,
  PS: 29,
  PT: 25,
  QA: 29,
  RO: 24,
  RS: 22,
  RU: 33,
  SA: 24,
  SC: 31,
  SD: 18,
  SE: 24,
  SI: 19,
  SK: 24,
  SM: 27,
  SO: 23,
  ST: 25,
  SV: 28,
  TL: 23,
  TN: 24,
  TR: 26,
  UA: 29,
  VA: 22,
  VG: 24,
  XK: 20,
  YE: 30,
}

/** File name extensions that are not top-level domains. Used to tell `logo@2x.png` from an e-mail address. */
export const FILE_ENDINGS: ReadonlySet<string> = new Set(
  'png jpg jpeg gif svg webp ico css scss less js mjs cjs jsx ts tsx json yaml yml xml html htm vue wasm txt pdf exe dll jar tgz gz tar whl deb rpm ttf woff'.split(
    ' ',
  ),
)
