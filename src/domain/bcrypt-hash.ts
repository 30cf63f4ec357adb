/** Greatest cost of a hash that is checked, which takes about a second; each step takes twice as long. */
const MAX_COST = 14
const FORM = /^\$2[abxy]\$(?<cost>\d\d)\$[./A-Za-z0-9]{53}$/

/** Tells whether a password hash is of bcrypt: imported, and not replaced by a login yet. */
export function isBcrypt(hash: string): boolean {
  return hash.startsWith('$2')
}

/** Tells whether a text is a bcrypt hash that a login can afford to check. */
export function isAffordableBcrypt(text: string): boolean {
  const cost = FORM.exec(text)?.groups?.['cost']
  return cost !== undefined && Number(cost) <= MAX_COST
}
