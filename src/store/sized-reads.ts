/**
 * Read operations whose rows contain texts of any length. `readBytes` determines the size of these rows
 * before they are read.
 */
export const SIZED_READS = [
  'auditEntriesBefore',
  'auditPage',
  'findTokenWithKey',
  'findTokenPageWithKeys',
  'listTokensWithKeys',
  'findTokensWithKeys',
  'managedUser',
  'tokensWithOwners',
  'pageOfUsers',
  'scanUsage',
  'storedConfiguration',
] as const

/** Name of a read operation in `SIZED_READS`. */
export type SizedRead = (typeof SIZED_READS)[number]

/** Whether a read operation is one of `SIZED_READS`. */
export function isSizedRead(name: string): name is SizedRead {
  return SIZED_READS.some((read) => read === name)
}
