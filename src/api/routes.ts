import { alternateChatModels, alternateModels } from './beta-models.ts'
import { billingSubscription } from './billing-subscription.ts'
import { billingUsage } from './billing-usage.ts'
import { changeToken } from './change-token.ts'
import { chatCompletions } from './chat-completions.ts'
import { completions } from './completions.ts'
import { countTokens } from './count-tokens.ts'
import { createChannel } from './create-channel.ts'
import { createToken } from './create-token.ts'
import { createUser } from './create-user.ts'
import { deleteChannel } from './delete-channel.ts'
import { deleteChannelsEndpoint } from './delete-channels.ts'
import { deleteToken } from './delete-token.ts'
import { deleteTokens } from './delete-tokens.ts'
import { removeUser } from './delete-user.ts'
import type { Endpoint } from './endpoint.ts'
import { getChannel } from './get-channel.ts'
import { getToken } from './get-token.ts'
import { getUser } from './get-user.ts'
import { healthz, readyz } from './health.ts'
import { listChannelsEndpoint } from './list-channels.ts'
import { listGroups } from './list-groups.ts'
import { listOptionsEndpoint } from './list-options.ts'
import { listTokens } from './list-tokens.ts'
import { listUsers } from './list-users.ts'
import { login } from './login.ts'
import { logout, logoutByGet } from './logout.ts'
import { manage } from './manage-user.ts'
import { messages } from './messages.ts'
import { metricsEndpoint } from './metrics.ts'
import { deleteModel, model } from './model.ts'
import { models } from './models.ts'
import { openApi } from './openapi.ts'
import { ownAccessToken } from './own-access-token.ts'
import { ownGroups } from './own-groups.ts'
import { ownProfile } from './own-profile.ts'
import { pricingEndpoint } from './pricing.ts'
import { rerank } from './rerank.ts'
import { revealChannelKey } from './reveal-channel-key.ts'
import { revealToken } from './reveal-token.ts'
import { revealTokens } from './reveal-tokens.ts'
import { searchChannels } from './search-channels.ts'
import { searchTokens } from './search-tokens.ts'
import { searchUsers } from './search-users.ts'
import { setOptionEndpoint } from './set-option.ts'
import { testChannelEndpoint } from './test-channel.ts'
import { tokenUsage, tokenUsageRedirect } from './token-usage.ts'
import { updateChannelEndpoint } from './update-channel.ts'
import { updateOwnProfile } from './update-own-profile.ts'
import { updateUser } from './update-user.ts'
import { ownUsageDays, usageDays } from './usage-days.ts'
import { ownUsageExport, usageExport } from './usage-export.ts'
import { ownUsageLog, usageLog } from './usage-log.ts'
import { ownUsageSums, usageSums } from './usage-stat.ts'

/** Everything that the gateway answers to: its table of contents. */
export const ROUTES: readonly Endpoint[] = [
  chatCompletions,
  completions,
  messages,
  countTokens,
  rerank,
  healthz,
  readyz,
  metricsEndpoint,
  ownProfile,
  tokenUsage,
  tokenUsageRedirect,
  ...billingSubscription,
  ...billingUsage,
  models,
  model,
  deleteModel,
  alternateModels,
  alternateChatModels,
  listTokens,
  searchTokens,
  getToken,
  revealToken,
  createToken,
  deleteTokens,
  revealTokens,
  changeToken,
  deleteToken,
  login,
  logout,
  logoutByGet,
  updateOwnProfile,
  ownAccessToken,
  listUsers,
  searchUsers,
  getUser,
  createUser,
  updateUser,
  removeUser,
  manage,
  ownGroups,
  pricingEndpoint,
  listChannelsEndpoint,
  searchChannels,
  getChannel,
  createChannel,
  updateChannelEndpoint,
  deleteChannel,
  deleteChannelsEndpoint,
  testChannelEndpoint,
  revealChannelKey,
  listOptionsEndpoint,
  setOptionEndpoint,
  listGroups,
  usageLog,
  ownUsageLog,
  usageSums,
  ownUsageSums,
  usageExport,
  ownUsageExport,
  usageDays,
  ownUsageDays,
  openApi(() => ROUTES),
]
