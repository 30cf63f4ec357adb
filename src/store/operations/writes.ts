import {
  noteDeclared,
  noteExceededBudget,
  noteRefusedSignIn,
  noteReveal,
  pruneAuditLog,
} from './audit-log.ts'
import {
  dropOldestKept,
  keepSignatures,
  pruneSignatures,
  removeOrphanedParts,
  storeResponsePart,
} from './kept-data.ts'
import {
  endConditions,
  reportConditions,
  claimAlerts,
  noteAlerts,
  spreadAlerts,
  subscribeAlerts,
} from './alerts.ts'
import {
  changeChannel,
  createChannels,
  deleteChannels,
  noteChannelTest,
  setEntries,
  storePriceSet,
} from './configuration.ts'
import {
  changeToken,
  rotateToken,
  setTokenStatus,
  switchToken,
  createToken,
  createUserToken,
  deleteTokens,
} from './tokens.ts'
import { changeUser, setAccessToken, createUser, deleteUser } from './users.ts'
import {
  createUserOfIdentity,
  markStateUsed,
  linkIdentity,
  unlinkIdentity,
  beginSession,
  endOwnSession,
  endSession,
  noteSessionUse,
} from './sign-ins.ts'
import { importAccount, seedUsers } from './seed-accounts.ts'
import { pruneBudgets, pruneLentBudgets } from './budgets.ts'
import { addRefusals } from './refusals.ts'
import {
  deleteResponse,
  noteOutcome,
  noteStreamed,
  pruneResponses,
  storeResponse,
  storeProvenance,
} from './stored-responses.ts'
import { pruneSlots } from './usage-sums.ts'

/** Write operations, without those of calls (`LedgerWrites`). */
export const writes = {
  addRefusals,
  beginSession,
  changeChannel,
  changeToken,
  changeUser,
  claimAlerts,
  createChannels,
  createToken,
  createUser,
  createUserOfIdentity,
  createUserToken,
  deleteChannels,
  deleteResponse,
  deleteTokens,
  deleteUser,
  dropOldestKept,
  endConditions,
  endOwnSession,
  endSession,
  importAccount,
  keepSignatures,
  linkIdentity,
  markStateUsed,
  noteAlerts,
  noteChannelTest,
  noteDeclared,
  noteExceededBudget,
  noteOutcome,
  noteRefusedSignIn,
  noteReveal,
  noteSessionUse,
  noteStreamed,
  pruneAuditLog,
  pruneResponses,
  pruneBudgets,
  pruneLentBudgets,
  pruneSignatures,
  pruneSlots,
  removeOrphanedParts,
  reportConditions,
  rotateToken,
  seedUsers,
  setAccessToken,
  setEntries,
  setTokenStatus,
  spreadAlerts,
  storePriceSet,
  storeProvenance,
  storeResponse,
  storeResponsePart,
  subscribeAlerts,
  switchToken,
  unlinkIdentity,
} as const
