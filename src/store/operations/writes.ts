// Write operations, without those of calls (`LedgerWrites`).

export {
  endConditions,
  reportConditions,
  claimAlerts,
  noteAlerts,
  spreadAlerts,
  subscribeAlerts,
} from './alerts.ts'
export {
  noteDeclared,
  noteExceededBudget,
  noteRefusedSignIn,
  noteReveal,
  pruneAuditLog,
} from './audit-log.ts'
export { pruneBudgets, pruneLentBudgets } from './budgets.ts'
export {
  changeChannel,
  createChannels,
  deleteChannels,
  noteChannelTest,
  setEntries,
  storePriceSet,
} from './configuration.ts'
export {
  dropOldestKept,
  keepSignatures,
  pruneSignatures,
  removeOrphanedParts,
  storeResponsePart,
} from './kept-data.ts'
export { addRefusals } from './refusals.ts'
export { importAccount, seedUsers } from './seed-accounts.ts'
export {
  createUserOfIdentity,
  markStateUsed,
  linkIdentity,
  unlinkIdentity,
  beginSession,
  endOwnSession,
  endSession,
  noteSessionUse,
} from './sign-ins.ts'
export {
  deleteResponse,
  noteOutcome,
  noteStreamed,
  pruneResponses,
  storeResponse,
  storeProvenance,
} from './stored-responses.ts'
export {
  changeToken,
  rotateToken,
  setTokenStatus,
  enableOrDisableToken,
  createToken,
  createUserToken,
  deleteTokens,
} from './tokens.ts'
export { pruneSlots } from './usage-sum-queries.ts'
export { changeUser, setAccessToken, createUser, deleteUser } from './users.ts'
