import { conservation } from './conservation.ts'
import { credentials } from './credentials.ts'
import { tokenById, tokenByKeyHash } from './find-token.ts'
import { countUsers, listUsers, userByAccessToken, userById, userByName } from './find-user.ts'
import { keyedToken, keyedTokenPage, keyedTokens } from './keyed-tokens.ts'
import { pageOfUsers } from './page-of-users.ts'
import { managedUser, profile } from './profile.ts'
import { revealKey, revealKeys } from './reveal-key.ts'
import { userBySession } from './sessions.ts'
import { storedConfiguration } from './stored-configuration.ts'

/** Everything that can be asked: each reads one state of the database, whatever is written meanwhile. */
export const reads = {
  conservation,
  countUsers,
  credentials,
  keyedToken,
  keyedTokenPage,
  keyedTokens,
  listUsers,
  managedUser,
  pageOfUsers,
  profile,
  revealKey,
  revealKeys,
  storedConfiguration,
  tokenById,
  tokenByKeyHash,
  userByAccessToken,
  userById,
  userByName,
  userBySession,
} as const
