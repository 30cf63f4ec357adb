import { QueryObserver } from '@tanstack/react-query'
import { expect, test } from 'vitest'
import { queryClient } from './query-client.ts'

test('what is still being fetched for the first time is fetched again after a change', async () => {
  const answers = [Promise.withResolvers<string>(), Promise.withResolvers<string>()]
  let fetches = 0
  const queryFn = (): Promise<string> | undefined => answers[fetches++]?.promise
  const observer = new QueryObserver<string | undefined>(queryClient, { queryKey: ['list'], queryFn })
  const stop = observer.subscribe(() => {})
  const changed = queryClient.invalidateQueries({ queryKey: ['list'] })
  answers[0]?.resolve('before the change')
  answers[1]?.resolve('after the change')
  await changed
  expect(observer.getCurrentResult().data).toBe('after the change')
  expect(fetches).toBe(2)
  stop()
})
