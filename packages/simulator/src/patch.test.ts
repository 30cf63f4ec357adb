import { expect, test } from 'vitest'
import { writePatch } from './patch.ts'

test("the simulator's patch for one quoted text adds a new file with this text", () => {
  expect(writePatch('a.txt', ['hello'], '')).toBe(
    '*** Begin Patch\n*** Add File: a.txt\n+hello\n*** End Patch\n',
  )
})

test("the simulator's patch for two quoted texts replaces the first by the second in the line that contains it", () => {
  expect(writePatch('a.txt', ['gate', '$& tower'], 'Output:\nMeet at the gate.\nBring a coat.')).toBe(
    '*** Begin Patch\n*** Update File: a.txt\n@@\n-Meet at the gate.\n+Meet at the $& tower.\n*** End Patch\n',
  )
})

test("the simulator's patch for a file that it has not seen replaces a whole line that equals the first quoted text", () => {
  expect(writePatch('a.txt', ['one', 'two'], 'No such file')).toContain('\n-one\n+two\n')
})
