/** Whether the last digit is the correct check digit of the number (Luhn, ISO/IEC 7812-1 annex B). */
export function isLuhn(digits: string): boolean {
  let sum = 0
  for (let at = digits.length - 1, double = false; at >= 0; at--, double = !double) {
    const digit = Number(digits[at]) * (double ? 2 : 1)
    sum += digit > 9 ? digit - 9 : digit
  }
  return sum % 10 === 0
}

/**
 * Whether the check digits of a bank account number (IBAN) are correct (mod 97-10, ISO 13616). `text`
 * contains only digits and capital letters.
 */
export function isIbanChecksum(text: string): boolean {
  let rest = 0
  for (const character of text.slice(4) + text.slice(0, 4)) {
    const value = Number.parseInt(character, 36)
    rest = (rest * (value > 9 ? 100 : 10) + value) % 97
  }
  return rest === 1
}
