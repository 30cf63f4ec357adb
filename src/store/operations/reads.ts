import { conservation } from './conservation.ts'
import { tokenById, tokenByKeyHash } from './find-token.ts'
import { countUsers, listUsers, userByAccessToken, userById, userByName } from './find-user.ts'
import { keyedToken, keyedTokenPage, keyedTokens } from './keyed-tokens.ts'
import { profile } from './profile.ts'
import { revealKey, revealKeys } from './reveal-key.ts'

/** Everything that can be asked: each reads one state of the database, whatever is written meanwhile. */
export const reads = {
  conservation,
  countUsers,
  keyedToken,
  keyedTokenPage,
  keyedTokens,
  listUsers,
  profile,
  revealKey,
  revealKeys,
  tokenById,
  tokenByKeyHash,
  userByAccessToken,
  userById,
  userByName,
} as const
