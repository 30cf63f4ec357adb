/**
 * Reads whose rows contain texts of any length. `readBytes` determines their size before the rows are read.
 */
export const SIZED_READS = [
  'auditBefore',
  'auditPage',
  'findTokenWithKey',
  'findTokenPageWithKeys',
  'listTokensWithKeys',
  'findTokensWithKeys',
  'managedUser',
  'pageOfUsers',
  'storedConfiguration',
] as const

/** Name of a sized read. */
export type SizedRead = (typeof SIZED_READS)[number]

/** Whether a read is a sized read. */
export function isSizedRead(name: string): name is SizedRead {
  return SIZED_READS.some((read) => read === name)
}
