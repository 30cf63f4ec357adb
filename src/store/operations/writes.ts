import {
  noteDeclared,
  noteExceededBudget,
  noteRefusedSignIn,
  noteReveal,
  pruneAuditLog,
} from './audit-log.ts'
import { dropOldestKept } from './drop-oldest-kept.ts'
import { endConditions, reportConditions } from './alert-conditions.ts'
import { claimAlerts, noteAlerts, spreadAlerts } from './alerts.ts'
import { subscribeAlerts } from './alert-subscriptions.ts'
import { changeChannel, createChannels, deleteChannels, noteChannelTest } from './change-channels.ts'
import { changeToken, rotateToken, setTokenStatus, switchToken } from './tokens.ts'
import { changeUser, setAccessToken } from './users.ts'
import { createToken, createUserToken } from './create-token.ts'
import { createUser } from './create-user.ts'
import { deleteTokens } from './delete-tokens.ts'
import { deleteUser } from './delete-user.ts'
import { createUserOfIdentity, markStateUsed } from './identities.ts'
import { linkIdentity } from './link-identity.ts'
import { unlinkIdentity } from './unlink-identity.ts'
import { importAccount } from './import-account.ts'
import { pruneBudgets, pruneLentBudgets } from './prune-budgets.ts'
import { keepSignatures, pruneSignatures } from './kept-data.ts'
import { addRefusals } from './refusals.ts'
import { removeOrphanedParts, storeResponsePart } from './response-parts.ts'
import { seedUsers } from './seed-accounts.ts'
import { beginSession, endOwnSession, endSession, noteSessionUse } from './sessions.ts'
import { setEntries } from './set-entries.ts'
import { deleteResponse, noteOutcome, noteStreamed, pruneResponses, storeResponse } from './store-response.ts'
import { storePriceSet } from './configuration.ts'
import { storeProvenance } from './store-provenance.ts'
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
