import { auditExport, auditLog } from './audit/audit-log.ts'
import { alternateChatModels, alternateModel, alternateModels } from './models/beta-models.ts'
import { billingSubscription } from './usage/billing-subscription.ts'
import { billingUsage } from './usage/billing-usage.ts'
import { changeToken } from './tokens/change-token.ts'
import { channelHealthEndpoint } from './channels/channel-health.ts'
import { createChannel } from './channels/create-channel.ts'
import { createToken } from './tokens/create-token.ts'
import { createUser } from './users/create-user.ts'
import { deleteChannel } from './channels/delete-channel.ts'
import { deleteChannelsEndpoint } from './channels/delete-channels.ts'
import { deleteToken } from './tokens/delete-token.ts'
import { deleteTokens } from './tokens/delete-tokens.ts'
import { removeUser } from './users/delete-user.ts'
import { getChannel } from './channels/get-channel.ts'
import { getToken } from './tokens/get-token.ts'
import { getUser } from './users/get-user.ts'
import { listChannelsEndpoint } from './channels/list-channels.ts'
import { listGroups } from './users/list-groups.ts'
import { listOptionsEndpoint } from './settings/list-options.ts'
import { listTokens } from './tokens/list-tokens.ts'
import { listUsers } from './users/list-users.ts'
import { login } from './users/login.ts'
import { logout, logoutByGet } from './users/logout.ts'
import { manage } from './users/manage-user.ts'
import { deleteModel, model } from './models/model.ts'
import { models } from './models/models.ts'
import { linkOwnIdentity, listOwnIdentities, unlinkOwnIdentity } from './users/own-identities.ts'
import { oidcCallback, oidcStart } from './users/oidc-sign-in.ts'
import { openApi } from './openapi/openapi.ts'
import { ownAccessToken } from './users/own-access-token.ts'
import { ownGroups } from './users/own-groups.ts'
import { endOwnSession, listOwnSessions } from './users/own-sessions.ts'
import { managedModelsEndpoint, setModelPriceEndpoint } from './models/managed-models.ts'
import { playgroundModels } from './models/playground-models.ts'
import { consoleShellEndpoint } from './console/console-shell.ts'
import { ownProfile } from './users/own-profile.ts'
import { status } from './status/status.ts'
import { pricingEndpoint } from './models/pricing.ts'
import { revealChannelKey } from './channels/reveal-channel-key.ts'
import { revealToken } from './tokens/reveal-token.ts'
import { revealTokens } from './tokens/reveal-tokens.ts'
import { searchChannels } from './channels/search-channels.ts'
import { searchTokens } from './tokens/search-tokens.ts'
import { searchUsers } from './users/search-users.ts'
import { setOptionEndpoint } from './settings/set-option.ts'
import { testChannelEndpoint } from './channels/test-channel.ts'
import { testAllChannelsEndpoint } from './channels/test-all-channels.ts'
import { testDraftEndpoint } from './channels/test-draft.ts'
import { upstreamModelsEndpoint } from './channels/list-upstream-models.ts'
import { tokenUsage } from './tokens/token-usage.ts'
import { updateChannelEndpoint } from './channels/update-channel.ts'
import { updateOwnProfile } from './users/update-own-profile.ts'
import { userTokens } from './users/user-tokens.ts'
import { updateUser } from './users/update-user.ts'
import { ownUsageDays, usageDays } from './usage/usage-days.ts'
import { ownUsageStream, usageStream } from './usage/usage-stream.ts'
import { ownUsageExport, usageExport } from './usage/usage-export.ts'
import { ownUsageLog, usageLog } from './usage/usage-log.ts'
import { ownUsageSums, usageSums } from './usage/usage-stat.ts'
import { callDetail, ownCallDetail } from './usage/call-detail.ts'
import { ownRefusals, refusals } from './usage/refusals.ts'
import { ownUsageSeries, usageSeriesEndpoint } from './usage/usage-series.ts'
import type { JsonEndpoint } from './endpoint.ts'
import { RAW_ROUTES } from './raw-routes.ts'

/** The endpoints that take and return JSON: accounts, administration, balances, model lists. */
export const JSON_ROUTES: readonly JsonEndpoint[] = [
  ownProfile,
  tokenUsage,
  ...billingSubscription,
  ...billingUsage,
  models,
  model,
  deleteModel,
  playgroundModels,
  managedModelsEndpoint,
  setModelPriceEndpoint,
  consoleShellEndpoint,
  alternateModels,
  alternateModel,
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
  listOwnIdentities,
  unlinkOwnIdentity,
  linkOwnIdentity,
  oidcStart,
  oidcCallback,
  listOwnSessions,
  endOwnSession,
  updateOwnProfile,
  ownAccessToken,
  listUsers,
  searchUsers,
  getUser,
  ...userTokens,
  createUser,
  updateUser,
  removeUser,
  manage,
  ownGroups,
  status,
  pricingEndpoint,
  listChannelsEndpoint,
  searchChannels,
  channelHealthEndpoint,
  getChannel,
  createChannel,
  updateChannelEndpoint,
  deleteChannel,
  deleteChannelsEndpoint,
  testChannelEndpoint,
  testAllChannelsEndpoint,
  testDraftEndpoint,
  upstreamModelsEndpoint,
  revealChannelKey,
  listOptionsEndpoint,
  setOptionEndpoint,
  listGroups,
  auditLog,
  auditExport,
  usageLog,
  usageStream,
  ownUsageStream,
  ownUsageLog,
  usageSums,
  ownUsageSums,
  usageExport,
  ownUsageExport,
  usageDays,
  ownUsageDays,
  usageSeriesEndpoint,
  ownUsageSeries,
  refusals,
  ownRefusals,
  callDetail,
  ownCallDetail,
  openApi(() => [...RAW_ROUTES, ...JSON_ROUTES]),
]
