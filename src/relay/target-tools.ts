import type { UnpricedTools } from '../alerts/unpriced-tools.ts'
import { FREE_PRICE } from '../domain/price.ts'
import { pricedTools, type ToolTerms } from '../domain/tool-price.ts'
import type { OfferedTool, ToolUse } from '@sluice/wire/tool-use'
import type { PricedTool } from '../domain/tool-use.ts'
import type { Call } from './call.ts'
import type { Terms } from './price-usage.ts'
import { toolsAt, toolTerms, unlistedTypes } from './tool-terms.ts'
import type { Target } from './request-stages.ts'

const NONE: readonly OfferedTool[] = []

/** Terms of the provider's tools at the target of a call. */
export function termsAt(call: Call, { channel, request, plan }: Target): ToolTerms {
  const { settings, rate } = call.plan
  const { protocol: dialect, upstreamModel: model } = request
  return toolTerms(settings, rate, channel, { dialect, model, offered: plan.tools?.tools ?? NONE })
}

/** Terms of the charge of a response. */
export function pricingAt(call: Call, target: Target): Terms {
  const { rate, request, settings } = call.plan
  return {
    rate,
    media: () => settings.models.get(request.model).price ?? FREE_PRICE,
    countPrompt: () => call.countChargedPrompt(),
    count: call.services.count,
    unitsOf: request.searchUnits,
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
export function noteUnlisted(call: Call, { channel, plan }: Target, unpriced: UnpricedTools): boolean {
  if (!plan.tools) return false
  const { rate, request, settings } = call.plan
  const types = unlistedTypes(toolsAt(settings, rate, channel, plan.tools).known)
  for (const tool of types) unpriced.note({ model: request.model, channel: channel.name, tool })
  return types.length > 0
}

// If only citations show that the provider searched, the search counts only if the request offered one.
function shownBy({ plan }: Target, uses: readonly ToolUse[]): readonly ToolUse[] {
  if (uses.length === 0) return uses
  const isOffered = plan.tools?.dialect === 'chat'
  return uses.filter(({ isCited }) => !isCited || isOffered)
}
