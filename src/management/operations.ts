import { backup } from './backup.ts'
import { listAllChannels } from './channels/find-channel.ts'
import { disableChannel, enableChannel, testNamedChannel } from './channels/named-channel.ts'
import { budgetToken } from './tokens/budget-token.ts'
import { budgetUser } from './users/budget-user.ts'
import { createToken } from './tokens/create-token.ts'
import { createUser } from './users/create-user.ts'
import { deleteToken } from './tokens/delete-token.ts'
import { issueAccessToken } from './users/issue-access-token.ts'
import { listTokens } from './tokens/list-tokens.ts'
import { listUsers } from './users/list-users.ts'
import { removeUser } from './users/remove-user.ts'
import { rotateToken } from './tokens/rotate-token.ts'
import { setPassword } from './users/set-password.ts'
import { disableToken, enableToken } from './tokens/token-status.ts'
import { tokenWarnings } from './tokens/token-warnings.ts'
import { topUpUser } from './users/top-up-user.ts'
import { usageByDimension } from './usage/usage-by-dimension.ts'
import { disableUser, enableUser } from './users/user-status.ts'

/**
 * Account management by name. Every operation validates its own input, which may come from anywhere, and
 * returns JSON. Errors are `GatewayError`s whose messages are fit for the client.
 */
export const operations = {
  backup,
  budgetToken,
  budgetUser,
  createToken,
  createUser,
  deleteToken,
  disableChannel,
  disableToken,
  disableUser,
  enableChannel,
  enableToken,
  enableUser,
  issueAccessToken,
  listAllChannels,
  listTokens,
  listUsers,
  removeUser,
  rotateToken,
  setPassword,
  testNamedChannel,
  tokenWarnings,
  topUpUser,
  usageByDimension,
} as const

/** The name of an operation. */
export type OperationName = keyof typeof operations

/** The input of an operation; an empty object where it takes none. */
export type OperationInput<Name extends OperationName> =
  Parameters<(typeof operations)[Name]> extends [unknown, infer Input] ? Input : Record<string, never>

/** The result of an operation. */
export type OperationOutput<Name extends OperationName> = Awaited<ReturnType<(typeof operations)[Name]>>
