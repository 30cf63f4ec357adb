/**
 * Maximum bcrypt cost that is accepted. Checking such a hash takes about a second, and each step doubles the
 * time.
 */
const MAX_COST = 14
const FORM = /^\$2[abxy]\$(?<cost>\d\d)\$[./A-Za-z0-9]{53}$/

/**
 * Whether a password hash was made by bcrypt. Such hashes were imported, and are replaced at the next login.
 */
export function isBcrypt(hash: string): boolean {
  return hash.startsWith('$2')
}

/** Whether a text is a bcrypt hash that is cheap enough to check at a login. */
export function isAffordableBcrypt(text: string): boolean {
  const cost = FORM.exec(text)?.groups?.['cost']
  return cost !== undefined && Number(cost) <= MAX_COST
}
