/** The path in a URL `sqlite:PATH` of an embedded database; undefined for any other URL. */
export function sqlitePath(databaseUrl: string): string | undefined {
  return /^sqlite:/i.test(databaseUrl) ? databaseUrl.slice('sqlite:'.length) : undefined
}

/** The URL of the embedded database in a file. */
export function sqliteUrl(path: string): string {
  return `sqlite:${path}`
}
