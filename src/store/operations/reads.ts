import { alertWork, hasAlertState } from './alerts.ts'
import { auditBefore, auditPage } from './audit-log.ts'
import { budgetsUsed } from './budgets.ts'
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
  accountOfToken,
  revealKey,
  revealKeys,
  tokenById,
  tokenByKeyHash,
  tokenNames,
  keyedToken,
  keyedTokenPage,
  keyedTokens,
  keyedTokensOf,
  ownTokenKeys,
  ownTokenNames,
  takenIdentifiers,
} from './find-accounts.ts'
import { identitiesOf, userByIdentity, liveSession, sessionsOf } from './sign-ins.ts'
import { keptSignatures, orphanedContents } from './kept-data.ts'
import { pendingSeeds } from './seed-accounts.ts'
import { readBytes } from './read-bytes.ts'
import { refusedCalls } from './refusals.ts'
import { storedConfiguration } from './configuration.ts'
import {
  backgroundOutcomes,
  keptText,
  reasoningOrigins,
  responseChain,
  responseFacts,
} from './stored-responses.ts'
import {
  usageCoverage,
  usageSeries,
  sumUsageDays,
  sumUsageScan,
  usageByDay,
  usageGroups,
} from './usage-sums.ts'

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
