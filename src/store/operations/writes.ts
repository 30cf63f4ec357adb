import { createToken } from './create-token.ts'
import { createUser } from './create-user.ts'
import { seedUsers } from './seed-users.ts'
import { setTokenStatus } from './token-status.ts'

/** Everything that can be changed but for what each call writes, which is `LedgerWrites`. */
export const writes = { createToken, createUser, seedUsers, setTokenStatus } as const
