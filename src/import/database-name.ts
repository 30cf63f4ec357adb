/** Describes the database of a `postgres:` URL for messages, without user and password. */
export function databaseName(url: string): string {
  const { hostname, port, pathname } = new URL(url)
  const host = decodeURIComponent(hostname)
  return `the database "${decodeURIComponent(pathname.slice(1))}" on ${host || 'localhost'}${port && `:${port}`}`
}

/** Returns the text if it is a `postgres:` URL that names a database; undefined for any other text. */
export function postgresUrl(text: string): string | undefined {
  if (!/^postgres(?:ql)?:\/\//i.test(text) || !URL.canParse(text)) return undefined
  return new URL(text).pathname.length > 1 ? text : undefined
}
