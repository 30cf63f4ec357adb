import { changeUser, setAccessToken } from './change-user.ts'
import { createToken } from './create-token.ts'
import { createUserToken } from './create-user-token.ts'
import { createUser } from './create-user.ts'
import { deleteUser } from './delete-user.ts'
import { seedUsers } from './seed-users.ts'
import { beginSession, endSession } from './sessions.ts'
import { disableToken, setTokenStatus } from './token-status.ts'

/** Everything that can be changed but for what each call writes, which is `LedgerWrites`. */
export const writes = {
  beginSession,
  changeUser,
  createToken,
  createUser,
  createUserToken,
  deleteUser,
  disableToken,
  endSession,
  seedUsers,
  setAccessToken,
  setTokenStatus,
} as const
