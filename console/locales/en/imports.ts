import { pluralS } from './plural.ts'

/** Texts in English: the page Import. */
export const imports = {
  title: 'Import',
  link: 'Import from another gateway',
  hint: 'The SQLite file of one-api or new-api, or the config.yaml of LiteLLM, up to 512 MB. Reading it writes nothing. Users, keys, channels, groups and prices carry over: keys go on working, and what is here already stays as it is. Stop the other gateway before you apply, so that it charges no more calls.',
  file: 'Database or configuration',
  choose: 'Choose a file',
  none: 'No file chosen',
  read: 'Read file',
  apply: 'Apply',
  report: 'Report',
  summary: 'Summary',
  kind: 'Kind',
  name: 'Name',
  result: 'Result',
  remark: 'Remark',
  readFrom: (source: string) => `Read ${source}. Nothing was written.`,
  applied: (failed: number, text: string) =>
    failed === 0
      ? 'Imported. Old keys work now.'
      : `Imported, but for ${text} user${pluralS(failed)} that could not be written: the report says why.`,
  toChannels: 'Look at the channels',
  passwords: (number: number, text: string) =>
    `${text} password${pluralS(number)} did not carry over: set new ones under Users.`,
  leftOff: (number: number, text: string) =>
    `${text} more line${pluralS(number)}; the counts above have all of them.`,
  sources: {
    'one-api': 'a database of one-api',
    'new-api': 'a database of new-api',
    litellm: 'a configuration of LiteLLM',
  },
  kinds: {
    user: 'User',
    token: 'Key',
    channel: 'Channel',
    group: 'Group',
    price: 'Price',
    option: 'Option',
    login: 'Sign-in',
    table: 'Table',
  },
  fates: {
    carried: 'Carries over',
    changed: 'Changed',
    there: 'There already',
    left: 'Does not carry over',
  },
}
