import { chatCompletions } from './chat-completions.ts'
import { completions } from './completions.ts'
import { countTokens } from './count-tokens.ts'
import { createChannel } from './create-channel.ts'
import { deleteChannel } from './delete-channel.ts'
import { deleteChannelsEndpoint } from './delete-channels.ts'
import type { Endpoint } from './endpoint.ts'
import { getChannel } from './get-channel.ts'
import { healthz, readyz } from './health.ts'
import { listChannelsEndpoint } from './list-channels.ts'
import { listGroups } from './list-groups.ts'
import { listOptionsEndpoint } from './list-options.ts'
import { messages } from './messages.ts'
import { metricsEndpoint } from './metrics.ts'
import { ownGroups } from './own-groups.ts'
import { ownProfile } from './own-profile.ts'
import { pricingEndpoint } from './pricing.ts'
import { revealChannelKey } from './reveal-channel-key.ts'
import { searchChannels } from './search-channels.ts'
import { setOptionEndpoint } from './set-option.ts'
import { testChannelEndpoint } from './test-channel.ts'
import { updateChannelEndpoint } from './update-channel.ts'

/** Everything that the gateway answers to: its table of contents. */
export const ROUTES: readonly Endpoint[] = [
  chatCompletions,
  completions,
  messages,
  countTokens,
  healthz,
  readyz,
  metricsEndpoint,
  ownProfile,
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
]
