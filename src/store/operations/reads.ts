import { conservation } from './conservation.ts'
import { listTokens, tokenById, tokenByKeyHash } from './find-token.ts'
import { countUsers, listUsers, userByAccessToken, userById, userByName } from './find-user.ts'
import { profile } from './profile.ts'
import { revealKey, revealKeys } from './reveal-key.ts'
import { storedConfiguration } from './stored-configuration.ts'

/** Everything that can be asked: each reads one state of the database, whatever is written meanwhile. */
export const reads = {
  conservation,
  countUsers,
  listTokens,
  listUsers,
  profile,
  revealKey,
  revealKeys,
  storedConfiguration,
  tokenById,
  tokenByKeyHash,
  userByAccessToken,
  userById,
  userByName,
} as const
