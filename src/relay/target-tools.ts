import type { UnpricedTools } from '../alerts/unpriced-tools.ts'
import { FREE_PRICE } from '../domain/price.ts'
import { pricedTools, type ToolTerms } from '../domain/tool-price.ts'
import type { OfferedTool, ToolUse } from '@sluice/wire/tool-use'
import type { PricedTool } from '../domain/tool-use.ts'
import type { Call, Target } from './call.ts'
import type { Terms } from './priced-usage.ts'
import { toolsAt, toolTerms, unlistedTypes } from './tool-terms.ts'

const NONE: readonly OfferedTool[] = []

/** Terms of the provider's tools at the target of a call. */
export function termsAt({ settings, rate }: Call, { channel, prepared }: Target): ToolTerms {
  const { protocol: dialect, upstreamModel: model, tools } = prepared
  return toolTerms(settings, rate, channel, { dialect, model, offered: tools?.tools ?? NONE })
}

/** Terms of the charge of a response. */
export function pricingAt(call: Call, target: Target): Terms {
  return {
    rate: call.rate,
    media: () => call.settings.models.get(call.model).price ?? FREE_PRICE,
    countPrompt: () => call.countChargedPrompt(),
    count: call.count,
    unitsOf: call.request.searchUnits,
    shown: (uses) => shownBy(target, uses),
    priceTools: (searches, uses) => pricedTools(searches, uses, termsAt(call, target)),
  }
}

/** Prices of the tool uses that a response has shown so far. */
export function pricesOf(call: Call, target: Target, uses: readonly ToolUse[]): readonly PricedTool[] {
  const shown = shownBy(target, uses)
  return shown.length === 0 ? [] : pricedTools(0, shown, termsAt(call, target))
}

/** Records the tools of a request that have no price; returns whether there are any. */
export function noteUnlisted(call: Call, { channel, prepared }: Target, unpriced: UnpricedTools): boolean {
  if (!prepared.tools) return false
  const types = unlistedTypes(toolsAt(call.settings, call.rate, channel, prepared.tools).known)
  for (const tool of types) unpriced.note({ model: call.model, channel: channel.name, tool })
  return types.length > 0
}

// If only citations show that the provider searched, the search counts only if the request offered one.
function shownBy({ prepared }: Target, uses: readonly ToolUse[]): readonly ToolUse[] {
  if (uses.length === 0) return uses
  const isOffered = prepared.tools?.dialect === 'chat'
  return uses.filter(({ isCited }) => !isCited || isOffered)
}
