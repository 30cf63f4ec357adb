import { setAccessToken, setUserStatus, topUpUser } from './change-user.ts'
import { createToken } from './create-token.ts'
import { createUserToken } from './create-user-token.ts'
import { createUser } from './create-user.ts'
import { seedUsers } from './seed-users.ts'
import { disableToken, setTokenStatus } from './token-status.ts'

/** Everything that can be changed but for what each call writes, which is `LedgerWrites`. */
export const writes = {
  createToken,
  createUser,
  createUserToken,
  disableToken,
  seedUsers,
  setAccessToken,
  setTokenStatus,
  setUserStatus,
  topUpUser,
} as const
