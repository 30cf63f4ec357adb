import { call, type FullResponse } from './client.ts'

/** A browser's cookie handling: it stores the cookies of one host and sends them back. */
export class Browser {
  readonly cookies = new Map<string, string>()

  /** Requests a URL, without following redirects. */
  async get(url: string, headers: Readonly<Record<string, string>> = {}): Promise<FullResponse> {
    const { pathname, search } = new URL(url)
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const sent = { ...(cookie !== '' && { cookie }), ...headers }
    const answer = await call(url, undefined, { method: 'GET', path: pathname + search, headers: sent })
    this.keep(answer)
    return answer
  }

  /** Keeps the cookies that a response sets. */
  keep({ headers }: Pick<FullResponse, 'headers'>): void {
    for (const set of headers['set-cookie'] ?? []) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(set) ?? []
      if (value === '') this.cookies.delete(name)
      else this.cookies.set(name, value)
    }
  }

  /** Requests a URL and resolves to the address that it redirects to. */
  async locationOf(url: string, headers: Readonly<Record<string, string>> = {}): Promise<string> {
    const { status, headers: answer, text } = await this.get(url, headers)
    if (status < 300 || status > 399) throw new Error(`no redirect, but ${status}: ${text}`)
    return new URL(answer.location ?? '', url).href
  }

  /** The session of the console, as a header. */
  get session(): { readonly authorization: undefined; readonly cookie: string } {
    return { authorization: undefined, cookie: `session=${this.cookies.get('session') ?? ''}` }
  }
}
