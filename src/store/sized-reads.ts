/** Reads whose rows have texts of any length: `readBytes` tells their sizes before they are read. */
export const SIZED_READS = [
  'auditBefore',
  'auditPage',
  'keyedToken',
  'keyedTokenPage',
  'keyedTokens',
  'keyedTokensOf',
  'managedUser',
  'pageOfUsers',
  'storedConfiguration',
] as const

/** Name of such a read. */
export type SizedRead = (typeof SIZED_READS)[number]

/** Tells whether the read of this name is one of them. */
export function isSizedRead(name: string): name is SizedRead {
  return SIZED_READS.some((read) => read === name)
}
