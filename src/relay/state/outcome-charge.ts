import { particularsText } from '../../domain/call-detail.ts'
import { charge } from '../../domain/charge.ts'
import type { Rate } from '../../domain/price.ts'
import type { Settings } from '../../domain/settings.ts'
import type { Settlement } from '../../domain/records/usage.ts'
import type { StoredResponse } from '../../domain/stored-response.ts'
import { pricedTools } from '../../domain/tool-price.ts'
import type { ToolUse } from '../../domain/tool-use.ts'
import type { Usage } from '../../domain/usage.ts'
import { usesBeside, usesOf } from '../../protocols/tool-tally.ts'
import { toolTerms } from '../tool-terms.ts'

/** Charge of a response that was made without its client. */
export type OutcomeCharge = Pick<Settlement, 'quota' | 'usage' | 'particulars'>

const NO_DELAYS = { queuedMs: 0, connectMs: 0 }

/** Prices what a response reported, with the uses of the provider's tools. */
export function priceOutcome(
  settings: Settings,
  { rate, response }: { readonly rate: Rate; readonly response: StoredResponse },
  reported: Usage,
  uses: readonly ToolUse[],
): OutcomeCharge {
  const channel = settings.channels.find(({ name }) => name === response.channel)
  const model = channel?.model_mapping.get(response.model) ?? response.model
  const searches = Math.max(reported.webSearches, usesOf(uses, 'web_search'))
  // The response repeats the forms of the tools that it used.
  const terms = toolTerms(settings, rate, channel, { dialect: 'responses', model, offered: [] })
  const tools = pricedTools(searches, usesBeside(uses, 'web_search'), terms)
  const usage = { ...reported, webSearches: searches }
  return {
    quota: charge(rate, usage, {}, tools),
    usage,
    particulars: particularsText(usage, { form: undefined, tools }, NO_DELAYS, []),
  }
}
