// Read operations, each on a snapshot of the database.

export { findPendingAlerts, hasAlertState, waitingAlerts } from './alerts.ts'
export { lastActive } from './last-active.ts'
export { auditEntriesBefore, auditPage } from './audit-log.ts'
export { batchSums } from './batch-sums.ts'
export { readBudgetUse } from './budgets.ts'
export { heldByNodes, heldOnAccounts } from './held-sums.ts'
export { storedConfiguration } from './configuration.ts'
export { deletedUsersWithKeptData } from './kept.ts'
export {
  batchPage,
  findKept,
  hasKept,
  keptBytes,
  keysOfKind,
  lapsedContents,
  listKept,
  readKeptPart,
} from './read-kept.ts'
export { lastAnswerRemoval } from './answer-removals.ts'
export { modelCallers } from './model-callers.ts'
export { modelRetirements } from './model-retirements.ts'
export { findUnbalancedAccounts } from './unbalanced-accounts.ts'
export {
  countUsers,
  credentials,
  hasBcryptPasswords,
  listUsers,
  managedUser,
  pageOfUsers,
  userByAccessToken,
  userById,
  usersById,
  userByName,
  accountOfToken,
  revealKey,
  revealKeys,
  tokenById,
  tokenByKeyHash,
  tokenNames,
  findTokenWithKey,
  findTokenPageWithKeys,
  listTokensWithKeys,
  findTokensWithKeys,
  ownTokenKeys,
  ownTokenNames,
  hasImportedKeys,
  takenIdentifiers,
  recentTokens,
  tokenGroups,
} from './find-accounts.ts'
export { callFacts, usersOfFilter } from './call-facts.ts'
export { channelIds, namesOfChannels } from './channel-names.ts'
export { findInvitation, listInvitations } from './invitations.ts'
export { findKeys } from './find-keys.ts'
export { isToolsetNamed } from './named-toolsets.ts'
export { matchingTokens, tokensWithOwners } from './tokens-of-all.ts'
export { failedCalls } from './failed-calls.ts'
export { sessionSums, usageSessions } from './usage-sessions.ts'
export { usageValues } from './usage-values.ts'
export { readBytes } from './read-bytes.ts'
export { refusedCalls } from './refusals.ts'
export { listRefusedCalls } from './refused-calls.ts'
export { secretState } from './secret-state.ts'
export { pendingDeclaredUsers } from './seed-accounts.ts'
export { identitiesOf, userByIdentity, liveSession, sessionsOf } from './sign-ins.ts'
export {
  backgroundOutcomes,
  reasoningOrigins,
  responseChain,
  responseFacts,
} from './stored-responses.ts'
export { callDetail, hasCalls, listUsage, priceSets, scanUsage, settledCalls } from './usage-log.ts'
export {
  usageSumsCoverage,
  usageSeries,
  sumUsageDays,
  sumUsageScan,
  usageByDay,
  usageGroups,
} from './usage-sum-queries.ts'
