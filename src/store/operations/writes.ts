import { changeToken } from './change-token.ts'
import { setAccessToken, setUserStatus, topUpUser } from './change-user.ts'
import { createToken } from './create-token.ts'
import { createUserToken } from './create-user-token.ts'
import { createUser } from './create-user.ts'
import { deleteTokens } from './delete-tokens.ts'
import { seedUsers } from './seed-users.ts'
import { setTokenStatus, switchToken } from './token-status.ts'

/** Everything that can be changed but for what each call writes, which is `LedgerWrites`. */
export const writes = {
  changeToken,
  createToken,
  createUser,
  createUserToken,
  deleteTokens,
  seedUsers,
  setAccessToken,
  setTokenStatus,
  setUserStatus,
  switchToken,
  topUpUser,
} as const
