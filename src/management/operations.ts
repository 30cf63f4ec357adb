import { backup } from './backup.ts'
import { createToken } from './tokens/create-token.ts'
import { createUser } from './users/create-user.ts'
import { disableToken } from './tokens/disable-token.ts'
import { issueAccessToken } from './users/issue-access-token.ts'
import { listTokens } from './tokens/list-tokens.ts'
import { listUsers } from './users/list-users.ts'
import { setPassword } from './users/set-password.ts'
import { tokenWarnings } from './tokens/token-warnings.ts'
import { topUpUser } from './users/top-up-user.ts'
import { disableUser, enableUser } from './users/user-status.ts'

/**
 * Account management, by name. Each reads its input itself, so that it may come from anywhere; what it
 * answers with is JSON. Errors are `GatewayError`s, with a sentence for whoever asked.
 */
export const operations = {
  backup,
  createToken,
  createUser,
  disableToken,
  disableUser,
  enableUser,
  issueAccessToken,
  listTokens,
  listUsers,
  setPassword,
  tokenWarnings,
  topUpUser,
} as const

/** The name of an operation. */
export type OperationName = keyof typeof operations

/** What an operation takes; those that take nothing are given an empty object. */
export type OperationInput<Name extends OperationName> =
  Parameters<(typeof operations)[Name]> extends [unknown, infer Input] ? Input : Record<string, never>

/** What an operation answers with. */
export type OperationOutput<Name extends OperationName> = Awaited<ReturnType<(typeof operations)[Name]>>
