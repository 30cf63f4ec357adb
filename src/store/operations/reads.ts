import { alertWork } from './alert-outbox.ts'
import { hasAlertState } from './alert-subscriptions.ts'
import { auditBefore, auditPage } from './audit-log.ts'
import { budgetsUsed } from './budgets-used.ts'
import { callDetail } from './call-detail.ts'
import { conservation } from './conservation.ts'
import { credentials, hasBcryptPasswords } from './credentials.ts'
import { accountOfToken, tokenById, tokenByKeyHash } from './find-token.ts'
import { countUsers, listUsers, userByAccessToken, userById, userByName } from './find-user.ts'
import {
  keyedToken,
  keyedTokenPage,
  keyedTokens,
  keyedTokensOf,
  ownTokenKeys,
  ownTokenNames,
} from './keyed-tokens.ts'
import { identitiesOf, userByIdentity } from './identities.ts'
import { pageOfUsers } from './page-of-users.ts'
import { keptSignatures } from './kept-signatures.ts'
import { pendingSeeds } from './pending-seeds.ts'
import { managedUser } from './profile.ts'
import { orphanedContents } from './response-parts.ts'
import { readBytes } from './read-bytes.ts'
import { refusedCalls } from './refusals.ts'
import { revealKey, revealKeys } from './reveal-key.ts'
import { liveSession, sessionsOf } from './sessions.ts'
import { storedConfiguration } from './stored-configuration.ts'
import {
  backgroundOutcomes,
  keptText,
  reasoningOrigins,
  responseChain,
  responseFacts,
} from './stored-responses.ts'
import { tokenNames } from './token-names.ts'
import { takenIdentifiers } from './taken-identifiers.ts'
import { listUsage } from './list-usage.ts'
import { scanUsage } from './usage-rows.ts'
import { usageCoverage, usageSeries } from './usage-series.ts'
import { sumUsageDays, sumUsageScan, usageByDay, usageGroups } from './usage-totals.ts'

/** Read operations, each on a snapshot of the database. */
export const reads = {
  accountOfToken,
  alertWork,
  auditBefore,
  auditPage,
  backgroundOutcomes,
  budgetsUsed,
  callDetail,
  conservation,
  countUsers,
  credentials,
  hasAlertState,
  hasBcryptPasswords,
  identitiesOf,
  keyedToken,
  keyedTokenPage,
  keyedTokens,
  keyedTokensOf,
  keptSignatures,
  keptText,
  listUsage,
  listUsers,
  liveSession,
  managedUser,
  pageOfUsers,
  orphanedContents,
  ownTokenKeys,
  ownTokenNames,
  pendingSeeds,
  readBytes,
  reasoningOrigins,
  refusedCalls,
  responseChain,
  responseFacts,
  revealKey,
  revealKeys,
  scanUsage,
  sessionsOf,
  storedConfiguration,
  sumUsageDays,
  sumUsageScan,
  takenIdentifiers,
  tokenById,
  tokenByKeyHash,
  tokenNames,
  usageByDay,
  usageCoverage,
  usageGroups,
  usageSeries,
  userByAccessToken,
  userById,
  userByIdentity,
  userByName,
} as const
