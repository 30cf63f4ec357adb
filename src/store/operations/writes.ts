import { changeChannel, createChannels, deleteChannels, noteChannelTest } from './change-channels.ts'
import { changeToken } from './change-token.ts'
import { changeUser, setAccessToken } from './change-user.ts'
import { createToken } from './create-token.ts'
import { createUserToken } from './create-user-token.ts'
import { createUser } from './create-user.ts'
import { deleteTokens } from './delete-tokens.ts'
import { deleteUser } from './delete-user.ts'
import { importAccount } from './import-account.ts'
import { keepSignatures, pruneSignatures } from './kept-signatures.ts'
import { addRefusals } from './refusals.ts'
import { removeOrphanedParts, storeResponsePart } from './response-parts.ts'
import { rotateToken } from './rotate-token.ts'
import { seedUsers } from './seed-users.ts'
import { beginSession, endSession } from './sessions.ts'
import { setEntries } from './set-entries.ts'
import { deleteResponse, noteOutcome, pruneResponses, storeResponse } from './store-response.ts'
import { storePriceSet } from './price-sets.ts'
import { storeProvenance } from './store-provenance.ts'
import { setTokenStatus, switchToken } from './token-status.ts'
import { pruneSlots } from './usage-series.ts'

/** Write operations, without those of calls (`LedgerWrites`). */
export const writes = {
  addRefusals,
  beginSession,
  changeChannel,
  changeToken,
  changeUser,
  createChannels,
  createToken,
  createUser,
  createUserToken,
  deleteChannels,
  deleteResponse,
  deleteTokens,
  deleteUser,
  endSession,
  importAccount,
  keepSignatures,
  noteChannelTest,
  noteOutcome,
  pruneResponses,
  pruneSignatures,
  pruneSlots,
  removeOrphanedParts,
  rotateToken,
  seedUsers,
  setAccessToken,
  setEntries,
  setTokenStatus,
  storePriceSet,
  storeProvenance,
  storeResponse,
  storeResponsePart,
  switchToken,
} as const
