import { pluralS } from './plural.ts'

/** Texts in English: the page What if. */
export const whatIf = {
  title: 'What if',
  hint: 'Prices the calls of a period again, each rounded once, as it would have been charged. Nothing is changed.',
  period: 'Period',
  periods: {
    '7d': 'Last 7 days',
    '30d': 'Last 30 days',
    '90d': 'Last 90 days',
    month: 'This month',
    'last-month': 'Last month',
  },
  add: { price: 'Add price', ratio: 'Add ratio', model: 'Add model' },
  kinds: { price: 'Another price', ratio: 'Another ratio', model: 'Another model' },
  remove: 'Remove this change',
  model: 'Model',
  input: 'Input',
  output: 'Output',
  cached: 'Cached input',
  group: 'Group',
  ratio: 'Ratio',
  from: 'In place of',
  to: 'Use',
  calculate: 'Calculate',
  result: 'Result',
  calls: 'Calls',
  charged: 'Charged',
  wouldBe: 'Would be',
  difference: 'Difference',
  differenceOf: (amount: string) => `Difference ${amount}`,
  all: 'All models',
  leftOut: (count: number, text: string, charged: string) =>
    `${text} call${pluralS(count)} (${charged}) left out: what they were charged does not follow from counts.`,
  notExact: 'The log does not have all calls of this period any more.',
}
