import { pluralS } from './plural.ts'

/** Texts in English: calls under way. */
export const live = {
  title: 'Live calls',
  table: 'Calls under way',
  empty: 'No call is under way.',
  count: (count: number, text: string) => `${text} call${pluralS(count)} under way`,
  started: 'Started',
  model: 'Model',
  key: 'Key',
  user: 'User',
  channel: 'Channel',
  tokens: 'Tokens',
  cost: 'Cost',
  time: 'Time',
  states: { waiting: 'waits', sent: 'sent', answering: 'answering' },
  at: (channel: string, attempt: number) => (attempt > 1 ? `${channel} (attempt ${attempt})` : channel),
  stop: 'Stop',
  stopped: (model: string, key: string) =>
    `The call of ${model} with “${key}” was stopped. What came until then is charged.`,
  notStopped: (model: string, key: string) => `The call of ${model} with “${key}” was not stopped.`,
}
