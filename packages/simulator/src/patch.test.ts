import { expect, test } from 'vitest'
import { writePatch } from './patch.ts'

test('one quoted text becomes the content of a new file', () => {
  expect(writePatch('a.txt', ['hello'], '')).toBe(
    '*** Begin Patch\n*** Add File: a.txt\n+hello\n*** End Patch\n',
  )
})

test('two quoted texts change the line that contains the first', () => {
  expect(writePatch('a.txt', ['gate', '$& tower'], 'Output:\nMeet at the gate.\nBring a coat.')).toBe(
    '*** Begin Patch\n*** Update File: a.txt\n@@\n-Meet at the gate.\n+Meet at the $& tower.\n*** End Patch\n',
  )
})

test('a file that was not shown is expected to have the text as a line', () => {
  expect(writePatch('a.txt', ['one', 'two'], 'No such file')).toContain('\n-one\n+two\n')
})
