import { afterEach, expect, test, vi } from 'vitest'

// Where the modules look for the base path.
vi.stubGlobal('document', { querySelector: () => null })
const { endSession } = await import('./account.ts')

afterEach(() => {
  vi.unstubAllGlobals()
})

/** Ends a session where this is the response. */
async function endWith(body: string): Promise<void> {
  vi.stubGlobal('fetch', async () => new Response(body, { status: 404 }))
  await endSession('one')
}

test('a session that the gateway does not know has ended, but not one that a proxy in front of it does not find', async () => {
  const refusal = { success: false, code: 'not_found', message: 'there is no such session' }
  await endWith(JSON.stringify(refusal))
  await expect(endWith('<h1>404 Not Found</h1>')).rejects.toMatchObject({ status: 404, code: '' })
})
