/** Texts in English: palette. */
export const palette = {
  title: 'Command palette',
  search: 'Search pages and actions',
  empty: 'Nothing found.',
  go: (page: string) => page,
  callById: (id: string) => `Call ${id}`,
  words: {
    keys: 'keys tokens 令牌',
    logs: 'logs calls requests',
    channels: 'channels upstreams providers',
    account: 'account profile password access token',
    models: 'models prices',
    users: 'users accounts',
    settings: 'settings options groups',
    overview: 'overview home',
    playground: 'playground try chat',
    usage: 'usage spend charts statistics',
    live: 'live running calls stop 实时调用',
    whatIf: 'what if prices recost 假设',
    audit: 'audit changes history',
  },
}
