import { changeToken } from './change-token.ts'
import { changeUser, setAccessToken } from './change-user.ts'
import { createToken } from './create-token.ts'
import { createUserToken } from './create-user-token.ts'
import { createUser } from './create-user.ts'
import { deleteTokens } from './delete-tokens.ts'
import { deleteUser } from './delete-user.ts'
import { seedUsers } from './seed-users.ts'
import { beginSession, endSession } from './sessions.ts'
import { setTokenStatus, switchToken } from './token-status.ts'

/** Everything that can be changed but for what each call writes, which is `LedgerWrites`. */
export const writes = {
  beginSession,
  changeToken,
  changeUser,
  createToken,
  createUser,
  createUserToken,
  deleteTokens,
  deleteUser,
  endSession,
  seedUsers,
  setAccessToken,
  setTokenStatus,
  switchToken,
} as const
