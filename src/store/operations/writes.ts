// Write operations, except the operations on calls (`LedgerWrites`).

export {
  endConditions,
  reportConditions,
  claimAlerts,
  recordAlertResults,
  assignAlerts,
  subscribeAlerts,
} from './alerts.ts'
export {
  recordDeclaredRows,
  recordContentDeletion,
  recordContentRead,
  recordExceededBudget,
  recordRefusedSignIn,
  recordReveal,
  recordCacheRemoval,
  recordBatchCancel,
  recordCallStop,
  pruneAuditLog,
} from './audit-log.ts'
export { pruneBudgets, pruneLentBudgets } from './budgets.ts'
export {
  approveFirstTools,
  approveTool,
  changeChannel,
  createChannels,
  deleteChannels,
  drainChannel,
  recordChannelTest,
  recordToolsets,
  setStoredSettings,
  storePriceSet,
} from './configuration.ts'
export {
  claimCall,
  endClaim,
  lapseClaims,
  pruneIdempotentCalls,
  releaseClaim,
  renewClaims,
} from './idempotent-calls.ts'
export { pruneAnswerRemovals, recordAnswerRemoval } from './answer-removals.ts'
export {
  lapseIncomplete,
  pruneKept,
  removeKept,
  removeKeptSums,
  removeOldestKept,
  storeKept,
  storeKeptFacts,
  storeKeptPart,
} from './kept.ts'
export { acceptInvitation, createInvitation, deleteInvitation } from './invitations.ts'
export { reportModelRetirements, storeModelRetirements } from './model-retirements.ts'
export { recordNodeSecrets } from './secret-state.ts'
export { addRefusals } from './refusals.ts'
export { addRefusedCalls, pruneRefusedCalls } from './refused-calls.ts'
export { importAccount, seedUsers } from './seed-accounts.ts'
export {
  createUserOfIdentity,
  consumeState,
  linkIdentity,
  unlinkIdentity,
  beginSession,
  endOwnSession,
  endSession,
  recordSessionUse,
} from './sign-ins.ts'
export {
  deleteResponse,
  recordOutcome,
  recordStreamedPart,
  pruneResponses,
  storeResponse,
  storeProvenance,
} from './stored-responses.ts'
export {
  changeToken,
  rotateToken,
  storeImportedKey,
  tagKeyEnds,
  setTokenStatus,
  enableOrDisableToken,
  createToken,
  createUserToken,
  deleteTokens,
} from './tokens.ts'
export { pruneHalfHourSums } from './usage-sum-queries.ts'
export { changeUser, setAccessToken, createUser, deleteUser } from './users.ts'
