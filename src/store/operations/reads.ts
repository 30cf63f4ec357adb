import { conservation } from './conservation.ts'
import { listTokens, tokenById, tokenByKeyHash } from './find-token.ts'
import { countUsers, listUsers, userById, userByName } from './find-user.ts'
import { revealKey, revealKeys } from './reveal-key.ts'

/** Everything that can be asked: each reads one state of the database, whatever is written meanwhile. */
export const reads = {
  conservation,
  countUsers,
  listTokens,
  listUsers,
  revealKey,
  revealKeys,
  tokenById,
  tokenByKeyHash,
  userById,
  userByName,
} as const
