import { backup } from './backup.ts'
import { cancelAnyBatch, listAllBatches, showAnyBatch } from './batches/batches.ts'
import { listChannelStates } from './channels/channel-health.ts'
import { listAllChannels } from './channels/channel-object.ts'
import { disableChannel, enableChannel, testNamedChannel } from './channels/channel-actions.ts'
import { changeAnyToken, deleteToken, disableToken, enableToken, rotateToken } from './tokens/change-token.ts'
import {
  setUserBudget,
  disableUser,
  enableUser,
  issueAccessToken,
  deleteUserAsOperator,
  setPassword,
  topUpUser,
} from './users/change-user.ts'
import { changeGroup, createGroup, deleteGroup, moveToGroup } from './groups/change-group.ts'
import { listGroups, showGroup } from './groups/list-groups.ts'
import { createToken, tokenWarnings } from './tokens/create-token.ts'
import { createUser } from './users/create-user.ts'
import { inviteUser, listInvitations, withdrawInvitation } from './users/invitations.ts'
import { listPrices } from './models/list-prices.ts'
import { listTokens } from './tokens/list-tokens.ts'
import { listAllTokens } from './tokens/tokens-of-all.ts'
import { listUsers, showUser } from './users/list-users.ts'
import { listCalls, listRefusals, showCall } from './usage/operator-calls.ts'
import { listMcpServers } from './mcp/mcp-servers.ts'
import { approveMcpTool, listToolsOfServers, showMcpTool } from './mcp/mcp-tools.ts'
import { usageByDimension } from './usage/sum-usage.ts'

/**
 * The operations of account management, by name. Each validates its input, which may be untrusted, and
 * returns JSON. Errors are `GatewayError`s whose messages clients may see.
 */
export const operations = {
  approveMcpTool,
  backup,
  budgetUser: setUserBudget,
  cancelAnyBatch,
  changeGroup,
  changeToken: changeAnyToken,
  createGroup,
  createToken,
  createUser,
  deleteGroup,
  deleteToken,
  disableChannel,
  disableToken,
  disableUser,
  enableChannel,
  enableToken,
  enableUser,
  inviteUser,
  issueAccessToken,
  listAllBatches,
  listAllChannels,
  listAllTokens,
  listCalls,
  listChannelStates,
  listGroups,
  listInvitations,
  listMcpServers,
  listPrices,
  listRefusals,
  listTokens,
  listToolsOfServers,
  listUsers,
  moveToGroup,
  removeUser: deleteUserAsOperator,
  rotateToken,
  setPassword,
  showAnyBatch,
  showCall,
  showGroup,
  showMcpTool,
  showUser,
  testNamedChannel,
  tokenWarnings,
  topUpUser,
  usageByDimension,
  withdrawInvitation,
} as const

export type OperationName = keyof typeof operations

/** The input of an operation; an empty object if it takes none. */
export type OperationInput<Name extends OperationName> =
  Parameters<(typeof operations)[Name]> extends [unknown, infer Input] ? Input : Record<string, never>

/** The result of an operation. */
export type OperationOutput<Name extends OperationName> = Awaited<ReturnType<(typeof operations)[Name]>>
