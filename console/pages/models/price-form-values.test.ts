import { expect, test } from 'vitest'
import { parseDecimal } from '../../../src/domain/decimal.ts'
import { completeTokenPrices, TOKEN_KINDS, tokenPriceTexts } from '../../../src/domain/token-kinds.ts'
import type { ManagedModel } from '../../api/models.ts'
import {
  priceToStore,
  exampleCallCost,
  isPriceText,
  isTokenCountText,
  isCompleteServicePrice,
  EMPTY_SERVICE_TIER,
  EMPTY_PRICE_TIER,
  priceFormValues,
} from './price-form-values.ts'

const MODEL: ManagedModel = {
  model: 'm',
  vendor: null,
  price: {
    input: '3',
    output: '15',
    cache_read: '0.3',
    cache_write_5m: '3.75',
    cache_write_1h: '7',
    audio_input: '3',
    audio_output: '40',
    request: '0',
  },
  tiers: [{ above: 1000, input: '6', output: '20' }],
  service: {},
  regions: {},
  source: 'built-in',
  channels: [],
  shutdown_date: null,
  successor: null,
  keys_7d: [],
  groups: [],
  calls_30d: 0,
  version: 'v',
}

test('saving the price form keeps prices that it does not show, and derived prices follow from the newly typed ones', () => {
  const price = { ...MODEL.price, tools: { web_fetch: '0.01' }, search_unit: '0.002', image_input: '4' }
  const typed = priceFormValues({ ...MODEL, price })
  expect(typed.amounts).toMatchObject({
    input: '3',
    output: '15',
    cache_read: '0.3',
    cache_write_5m: '',
    cache_write_1h: '7',
    audio_input: '',
    audio_output: '40',
    image_input: '4',
    request: '',
  })
  const changed = { ...typed, amounts: { ...typed.amounts, input: ' 4 ', cache_read: '0.5', second: '0.1' } }
  expect(priceToStore({ price }, changed)).toEqual({
    input: '4',
    output: '15',
    cache_read: '0.5',
    cache_write_1h: '7',
    audio_output: '40',
    image_input: '4',
    second: '0.1',
    tools: { web_fetch: '0.01' },
    search_unit: '0.002',
    tiers: [{ above: 1000, input: '6', output: '20' }],
  })
  const { amounts } = priceFormValues({ price: null, tiers: [] })
  expect(
    priceToStore(
      { price: null },
      { amounts: { ...amounts, input: '1', output: '2' }, tiers: [], service: [], regions: [] },
    ),
  ).toEqual({
    input: '1',
    output: '2',
  })
})

/** The prices of all kinds of tokens that a stated price leads to. */
function completed(stated: object): Record<string, string> {
  const amounts = Object.entries(stated).map(([name, usd]) => [name, parseDecimal(String(usd))])
  return tokenPriceTexts(completeTokenPrices(Object.fromEntries(amounts)))
}

test.each(TOKEN_KINDS)('saving the price form keeps a price of 0 for $name', ({ name }) => {
  const price = completed({ input: '3', output: '15', [name]: '0' })
  expect(completed(priceToStore({ price }, priceFormValues({ price, tiers: [] })))).toEqual(price)
})

test('saving the price form keeps web searches free, whose default is the list price of the tool', () => {
  const price = { ...MODEL.price, web_search: '0' }
  expect(priceToStore({ price }, priceFormValues({ price, tiers: [] }))).toMatchObject({ web_search: '0' })
})

test('the price tiers of a model can be edited, and keep the prices that the form does not show', () => {
  const tiers = [{ above: 1000, input: '6', output: '20', cache_read: '0.6', audio_input: '9' }]
  const typed = priceFormValues({ ...MODEL, tiers })
  expect(typed.tiers).toEqual([
    { above: '1000', input: '6', output: '20', cache_read: '', otherFields: { audio_input: '9' } },
  ])
  const added = [...typed.tiers, { ...EMPTY_PRICE_TIER, above: '5000', input: '8', output: '30' }]
  expect(priceToStore(MODEL, { ...typed, tiers: added })).toMatchObject({
    tiers: [
      { above: 1000, input: '6', output: '20', audio_input: '9' },
      { above: 5000, input: '8', output: '30' },
    ],
  })
})

test('prices by service tier and by region can be edited, and keep the prices that the form does not show', () => {
  const own = {
    input: '20',
    output: '40',
    cache_read: '2',
    audio_input: '9',
    tiers: [{ above: 5, input: '1' }],
  }
  const price = { ...MODEL.price, service: { flex: '0.5', ultrafast: own }, regions: { us: '1.1' } }
  const typed = priceFormValues({ ...MODEL, price })
  expect(typed.service).toEqual([
    { tier: 'flex', factor: '0.5', input: '', output: '', otherFields: {} },
    {
      tier: 'ultrafast',
      factor: '',
      input: '20',
      output: '40',
      otherFields: { audio_input: '9', tiers: [{ above: 5, input: '1' }] },
    },
  ])
  expect(priceToStore({ price }, typed)).toMatchObject({
    service: { flex: '0.5', ultrafast: { input: '20', output: '40', audio_input: '9', tiers: own.tiers } },
    regions: { us: '1.1' },
  })
  const [flex] = typed.service
  const changed = {
    ...typed,
    service: [
      { ...(flex ?? EMPTY_SERVICE_TIER), factor: ' 0.25 ' },
      { ...EMPTY_SERVICE_TIER, tier: 'fast', factor: '3' },
    ],
    regions: [],
  }
  const edited = priceToStore({ price }, changed)
  expect(edited).toMatchObject({ service: { flex: '0.25', fast: '3' } })
  expect(edited).not.toHaveProperty('regions')
  expect(edited).not.toHaveProperty('service.ultrafast')
})

test.each([
  [{ factor: '2' }, true],
  [{ input: '1', output: '2' }, true],
  [{}, false],
  [{ input: '1' }, false],
  [{ factor: '2', input: '1', output: '2' }, false],
  [{ factor: 'twice' }, false],
])('a tier of service costs a factor, or an input and an output: %j is one of them: %s', (typed, is) => {
  expect(isCompleteServicePrice({ ...EMPTY_SERVICE_TIER, ...typed })).toBe(is)
})

test('the price form computes the cost of an example call at the typed prices, and accepts only plain decimal numbers', () => {
  const { amounts } = priceFormValues({ price: null, tiers: [] })
  expect(exampleCallCost({ amounts: { ...amounts, input: '3', output: '15' } })).toBe(0.0105)
  expect(exampleCallCost({ amounts: { ...amounts, input: '3', output: 'a lot' } })).toBeUndefined()
  expect(['1', '0.25', ' 2 '].every(isPriceText)).toBe(true)
  expect(['', '-1', '1e3', '.5', '1,5'].some(isPriceText)).toBe(false)
})

test('typed prices may have commas between groups of three digits, and no other commas', () => {
  const model = { price: null, tiers: [] }
  const { amounts } = priceFormValues(model)
  expect(['1,000', '12,000.5', ' 1,000,000 '].every(isPriceText)).toBe(true)
  expect(['2,50', '2,5000', '0,500', '1,00'].some(isPriceText)).toBe(false)
  expect([isTokenCountText('200,000'), isTokenCountText('20,00')]).toEqual([true, false])
  const typed = {
    amounts: { ...amounts, input: '1,000', output: ' 2,000.5 ' },
    tiers: [{ ...EMPTY_PRICE_TIER, above: '200,000', input: '3,000', output: '4' }],
    service: [{ ...EMPTY_SERVICE_TIER, tier: 'flex', factor: '1,000' }],
    regions: [{ region: 'eu', factor: '1,000.1' }],
  }
  expect(priceToStore(model, typed)).toEqual({
    input: '1000',
    output: '2000.5',
    tiers: [{ above: 200_000, input: '3000', output: '4' }],
    service: { flex: '1000' },
    regions: { eu: '1000.1' },
  })
  expect(exampleCallCost(typed)).toBe(2.00025)
})
