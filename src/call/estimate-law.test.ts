import { NO_USAGE } from '@sluice/wire/usage'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { channelOf } from '../../test/samples/channel.ts'
import { tieredTokens, unitPrices } from '../../test/generators/prices.ts'
import { lawRuns } from '../../test/runner/tier.ts'
import { chargeOfCall } from '../domain/charge.ts'
import { ONE } from '../domain/decimal.ts'
import { chargeRateOf, FREE_PRICE, type Price } from '../domain/price.ts'
import { MODEL_SETTINGS, type Model } from '../domain/records/model.ts'
import type { Settings } from '../domain/settings.ts'
import { pricedTools } from '../domain/tool-price.ts'
import { estimate } from './estimate.ts'
import type { ChannelPlan, ParsedRequest } from './request-stages.ts'
import { toolPricingInputs } from './tool-pricing.ts'

const ASSUMED_CONTEXT = 200_000
const amount = unitPrices(3)
const price = fc
  .tuple(tieredTokens(amount, 3), amount, amount)
  .map(
    ([tiered, web_search, request]): Price => ({ ...FREE_PRICE, ...tiered, request, tools: { web_search } }),
  )

/** A tool of responses, whether its results fill the prompt, and what the request allows. */
const tool = fc.record({
  type: fc.constantFrom('web_search', 'mcp', 'file_search', 'image_generation', 'unknown_tool'),
  maxUses: fc.option(fc.integer({ min: 1, max: 6 }), { nil: undefined }),
  maxResultTokens: fc.option(fc.integer({ min: 1, max: 5_000 }), { nil: undefined }),
})

/** A part of what is allowed, often all of it. */
const part = fc.oneof(fc.constant(1), fc.double({ min: 0, max: 1, noNaN: true }))

const calls = fc.record({
  price,
  context: fc.option(fc.integer({ min: 100, max: 20_000 }), { nil: undefined }),
  promptBound: fc.integer({ min: 1, max: 40_000 }),
  output: fc.integer({ min: 1, max: 5_000 }),
  tools: fc.array(tool, { maxLength: 3 }),
  maxCalls: fc.option(fc.integer({ min: 1, max: 8 }), { nil: undefined }),
  stream: fc.boolean(),
  /** What the provider does, as parts of what it may do. */
  prompt: part,
  used: part,
  results: fc.infiniteStream(part),
  cached: part,
})
type Drawn = typeof calls extends fc.Arbitrary<infer T> ? T : never

/** The uses that the request allows, four where it states none. Each is the tool of the use. */
function allowedUses({ tools, maxCalls }: Drawn): Drawn['tools'] {
  const all = tools.flatMap((one) => Array.from({ length: one.maxUses ?? maxCalls ?? 4 }, () => one))
  return all.slice(0, maxCalls)
}

/** What the provider bills: it reads everything again after each use, up to the context of the model. */
function billedPrompt(drawn: Drawn, uses: Drawn['tools']): number {
  const { promptBound, prompt, output, results } = drawn
  const context = drawn.context ?? ASSUMED_CONTEXT
  const first = Math.min(Math.round(promptBound * prompt), context)
  let [read, billed] = [first, first]
  for (const one of uses) {
    if (one.type === 'image_generation') continue
    const part = results.next().value ?? 0
    read = Math.min(context, read + output + Math.round((one.maxResultTokens ?? context) * part))
    billed += Math.min(context, read)
    read -= output
  }
  return billed
}

function planned(drawn: Drawn) {
  const rate = chargeRateOf(drawn.price, ONE, 500_000)
  const model: Model = {
    ...MODEL_SETTINGS.defaults,
    name: 'm',
    contextTokens: drawn.context ?? ASSUMED_CONTEXT,
    isContextKnown: drawn.context !== undefined,
  }
  const settings = {
    options: { hold_tokens: 16, pass_through: false },
    models: { declared: [], get: () => model },
  } as unknown as Settings
  const channel = channelOf({ protocol: ['responses'], base_url: 'https://upstream.test/v1' })
  const plan: ChannelPlan = {
    channel,
    outputMaximum: drawn.output,
    choices: 1,
    ...(drawn.tools.length > 0 && {
      tools: { tools: drawn.tools, dialect: 'responses', model: 'm', maxCalls: drawn.maxCalls },
    }),
    prepare() {
      throw new Error('nothing is sent')
    },
  }
  const request: ParsedRequest = {
    model: 'm',
    stream: drawn.stream,
    maxTokens: drawn.output,
    promptBound: drawn.promptBound,
    forChannels: () => [plan],
  }
  const held = estimate('responses', request, [plan], rate, settings, model)
  const pricing = toolPricingInputs(settings, rate, channel, {
    dialect: 'responses',
    model: 'm',
    offered: drawn.tools,
  })
  const charge = (uses: Drawn['tools']): number => {
    const prompt = billedPrompt(drawn, uses)
    const cacheRead = Math.round(prompt * drawn.cached)
    const usage = { ...NO_USAGE, input: prompt - cacheRead, cacheRead, output: drawn.output }
    const searches = uses.filter(({ type }) => type === 'web_search').length
    return chargeOfCall(rate, usage, {}, pricedTools(searches, [], pricing))
  }
  return { held, charge }
}

const NUM_RUNS = lawRuns(6_000)

test('a whole call is charged no more than it holds, for any request and any usage within its bounds', () => {
  fc.assert(
    fc.property(calls, (drawn) => {
      const { held, charge } = planned({ ...drawn, stream: false })
      const allowed = allowedUses(drawn)
      expect(held.amount).toBeGreaterThanOrEqual(
        charge(allowed.slice(0, Math.round(allowed.length * drawn.used))),
      )
    }),
    { numRuns: NUM_RUNS },
  )
})

test('a stream whose hold has grown with each use is charged no more than that, for any request and any usage within its bounds', () => {
  fc.assert(
    fc.property(calls, (drawn) => {
      const { held, charge } = planned({ ...drawn, stream: true })
      const { quotaOf, readings } = held.budget
      // The uses of tools with a price have holds beside that for their results.
      const begun = allowedUses(drawn).filter(
        ({ type }) => type !== 'web_search' && type !== 'image_generation',
      )
      const uses = begun.slice(0, Math.round(begun.length * drawn.used))
      expect(quotaOf(drawn.output, Math.max(readings, uses.length))).toBeGreaterThanOrEqual(charge(uses))
    }),
    { numRuns: NUM_RUNS },
  )
})

test('a prompt holds no more than the context of its model, and a price for longer prompts raises that', () => {
  const drawn = (context: number | undefined, above: number): Drawn => ({
    price: {
      ...FREE_PRICE,
      tokens: { ...FREE_PRICE.tokens, input: { digits: 2n, scale: 0 } },
      tiers: above === 0 ? [] : [{ above, tokens: FREE_PRICE.tokens }],
    },
    context,
    promptBound: 10_000,
    output: 1,
    tools: [],
    maxCalls: undefined,
    stream: false,
    prompt: 1,
    used: 0,
    results: fc.sample(fc.infiniteStream(fc.constant(0)), 1)[0]!,
    cached: 0,
  })
  expect(planned(drawn(4_000, 0)).held.amount).toBe(4_000)
  expect(planned(drawn(20_000, 0)).held.amount).toBe(10_000)
  // Nothing limits a prompt of a model whose context is not known.
  expect(planned(drawn(undefined, 0)).held.amount).toBe(10_000)
  expect(planned(drawn(4_000, 4_000)).held.amount).toBe(10_000)
})
