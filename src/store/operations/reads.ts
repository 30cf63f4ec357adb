import { alertWork } from './alert-outbox.ts'
import { alertThresholds } from './alert-subscriptions.ts'
import { budgetsUsed } from './budgets-used.ts'
import { conservation } from './conservation.ts'
import { credentials, hasBcryptPasswords } from './credentials.ts'
import { accountOfToken, tokenById, tokenByKeyHash } from './find-token.ts'
import { countUsers, listUsers, userByAccessToken, userById, userByName } from './find-user.ts'
import { keyedToken, keyedTokenPage, keyedTokens } from './keyed-tokens.ts'
import { userByIdentity } from './identities.ts'
import { pageOfUsers } from './page-of-users.ts'
import { keptSignatures } from './kept-signatures.ts'
import { managedUser, profile } from './profile.ts'
import { orphanedContents } from './response-parts.ts'
import { revealKey, revealKeys } from './reveal-key.ts'
import { liveSession, sessionsOf } from './sessions.ts'
import { storedConfiguration } from './stored-configuration.ts'
import {
  backgroundOutcomes,
  chainBytes,
  reasoningOrigins,
  responseChain,
  responseFacts,
  storedResponse,
} from './stored-responses.ts'
import { tokenNames } from './token-names.ts'
import { takenIdentifiers } from './taken-identifiers.ts'
import { listUsage, scanUsage } from './usage-rows.ts'
import { sumUsageDays, sumUsageScan, usageByDay, usageGroups } from './usage-totals.ts'

/** Read operations, each on a snapshot of the database. */
export const reads = {
  accountOfToken,
  alertThresholds,
  alertWork,
  backgroundOutcomes,
  budgetsUsed,
  chainBytes,
  conservation,
  countUsers,
  credentials,
  hasBcryptPasswords,
  keyedToken,
  keyedTokenPage,
  keyedTokens,
  keptSignatures,
  listUsage,
  listUsers,
  liveSession,
  managedUser,
  pageOfUsers,
  orphanedContents,
  profile,
  reasoningOrigins,
  responseChain,
  responseFacts,
  revealKey,
  revealKeys,
  scanUsage,
  sessionsOf,
  storedConfiguration,
  storedResponse,
  sumUsageDays,
  sumUsageScan,
  takenIdentifiers,
  tokenById,
  tokenByKeyHash,
  tokenNames,
  usageByDay,
  usageGroups,
  userByAccessToken,
  userById,
  userByIdentity,
  userByName,
} as const
