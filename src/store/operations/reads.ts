import { alertWork } from './alerts.ts'
import { hasAlertState } from './alert-subscriptions.ts'
import { auditBefore, auditPage } from './audit-log.ts'
import { budgetsUsed } from './prune-budgets.ts'
import { callDetail, listUsage, scanUsage } from './usage-log.ts'
import { conservation } from './conservation.ts'
import {
  countUsers,
  credentials,
  hasBcryptPasswords,
  listUsers,
  managedUser,
  pageOfUsers,
  userByAccessToken,
  userById,
  userByName,
} from './find-accounts.ts'
import { accountOfToken, revealKey, revealKeys, tokenById, tokenByKeyHash, tokenNames } from './find-token.ts'
import {
  keyedToken,
  keyedTokenPage,
  keyedTokens,
  keyedTokensOf,
  ownTokenKeys,
  ownTokenNames,
} from './keyed-tokens.ts'
import { identitiesOf, userByIdentity } from './identities.ts'
import { keptSignatures } from './kept-data.ts'
import { pendingSeeds } from './seed-accounts.ts'
import { orphanedContents } from './response-parts.ts'
import { readBytes } from './read-bytes.ts'
import { refusedCalls } from './refusals.ts'
import { liveSession, sessionsOf } from './sessions.ts'
import { storedConfiguration } from './configuration.ts'
import {
  backgroundOutcomes,
  keptText,
  reasoningOrigins,
  responseChain,
  responseFacts,
} from './stored-responses.ts'
import { takenIdentifiers } from './taken-identifiers.ts'
import { usageCoverage, usageSeries } from './usage-sums.ts'
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
