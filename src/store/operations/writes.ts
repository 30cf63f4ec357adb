import { changeChannel, createChannels, deleteChannels, noteChannelTest } from './change-channels.ts'
import { setAccessToken, setUserStatus, topUpUser } from './change-user.ts'
import { createToken } from './create-token.ts'
import { createUserToken } from './create-user-token.ts'
import { createUser } from './create-user.ts'
import { seedUsers } from './seed-users.ts'
import { setEntries } from './set-entries.ts'
import { disableToken, setTokenStatus } from './token-status.ts'

/** Everything that can be changed but for what each call writes, which is `LedgerWrites`. */
export const writes = {
  changeChannel,
  createChannels,
  createToken,
  createUser,
  createUserToken,
  deleteChannels,
  disableToken,
  noteChannelTest,
  seedUsers,
  setAccessToken,
  setEntries,
  setTokenStatus,
  setUserStatus,
  topUpUser,
} as const
