import type { PairedProtocol } from '../samples/paired-protocol.ts'
import { type Case, type MemberText, requestText } from './case.ts'
import { VALUES } from './values.ts'

/** A template in which ◊ stands for a value of any kind. */
type Hole = readonly [field: string, template: string]

const chatPart = (part: string): Hole => ['messages', `[{"role":"user","content":[${part}]}]`]
const chatCall = (call: string): Hole => [
  'messages',
  `[{"role":"user","content":"hi"},{"role":"assistant","content":null,"tool_calls":[${call}]},{"role":"tool","tool_call_id":"c","content":"r"}]`,
]
const block = (text: string): Hole => ['messages', `[{"role":"user","content":[${text}]}]`]
const spoken = (text: string): Hole => [
  'messages',
  `[{"role":"user","content":"hi"},{"role":"assistant","content":[${text}]},{"role":"user","content":"go on"}]`,
]
const result = (text: string): Hole => [
  'messages',
  `[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{}}]},{"role":"user","content":[${text}]}]`,
]

const CHAT: readonly Hole[] = [
  ['messages', '[◊]'],
  ['messages', '[{"role":"user","content":"hi"},◊]'],
  ['messages', '[{"role":◊,"content":"hi"}]'],
  ['messages', '[{"role":"user","content":◊}]'],
  ['messages', '[{"role":"system","content":◊},{"role":"user","content":"hi"}]'],
  ['messages', '[{"role":"user","content":"hi"},{"role":"assistant","content":◊}]'],
  ['messages', '[{"role":"user","content":"hi","name":◊}]'],
  ['messages', '[{"role":"user","content":"hi"},{"role":"assistant","content":null,"refusal":◊}]'],
  ['messages', '[{"role":"user","content":"hi"},{"role":"assistant","content":"a","reasoning_content":◊}]'],
  ['messages', '[{"role":"user","content":"hi"},{"role":"assistant","content":"a","tool_calls":◊}]'],
  ['messages', '[{"role":"user","content":"hi"},{"role":"assistant","content":"a","function_call":◊}]'],
  ['messages', '[{"role":"user","content":"hi"},{"role":"tool","tool_call_id":◊,"content":"r"}]'],
  ['messages', '[{"role":"user","content":"hi"},{"role":"function","name":◊,"content":"r"}]'],
  chatPart('◊'),
  chatPart('{"type":◊,"text":"t"}'),
  chatPart('{"type":"text","text":◊}'),
  chatPart('{"type":"text","text":"t","cache_control":◊}'),
  chatPart('{"type":"image_url","image_url":◊}'),
  chatPart('{"type":"image_url","image_url":{"url":◊}}'),
  chatPart('{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgo=","detail":◊}}'),
  chatPart('{"type":"input_audio","input_audio":◊}'),
  chatPart('{"type":"input_audio","input_audio":{"data":◊,"format":"wav"}}'),
  chatPart('{"type":"input_audio","input_audio":{"data":"AAAA","format":◊}}'),
  chatPart('{"type":"file","file":◊}'),
  chatPart('{"type":"file","file":{"file_data":◊}}'),
  chatPart('{"type":"file","file":{"file_id":◊}}'),
  chatPart('{"type":"file","file":{"file_data":"data:application/pdf;base64,JVBERg==","filename":◊}}'),
  chatPart('{"type":"video_url","video_url":◊}'),
  chatPart('{"type":"video_url","video_url":{"url":◊}}'),
  chatCall('◊'),
  chatCall('{"id":◊,"type":"function","function":{"name":"f","arguments":"{}"}}'),
  chatCall('{"id":"c","type":◊,"function":{"name":"f","arguments":"{}"}}'),
  chatCall('{"id":"c","type":"function","function":◊}'),
  chatCall('{"id":"c","type":"function","function":{"name":◊,"arguments":"{}"}}'),
  chatCall('{"id":"c","type":"function","function":{"name":"f","arguments":◊}}'),
  ['tools', '[◊]'],
  ['tools', '[{"type":◊,"function":{"name":"f"}}]'],
  ['tools', '[{"type":"function","function":◊}]'],
  ['tools', '[{"type":"function","function":{"name":◊}}]'],
  ['tools', '[{"type":"function","function":{"name":"f","description":◊}}]'],
  ['tools', '[{"type":"function","function":{"name":"f","parameters":◊}}]'],
  ['tools', '[{"type":"custom","custom":◊}]'],
  ['tool_choice', '{"type":◊}'],
  ['tool_choice', '{"type":"function","function":◊}'],
  ['tool_choice', '{"type":"function","function":{"name":◊}}'],
  ['stream_options', '{"include_usage":◊}'],
  ['stream_options', '{"include_obfuscation":◊}'],
  ['response_format', '{"type":◊}'],
  ['response_format', '{"type":"json_schema","json_schema":◊}'],
  ['web_search_options', '{"search_context_size":◊}'],
  ['web_search_options', '{"user_location":◊}'],
  ['logit_bias', '{"1":◊}'],
  ['metadata', '{"a":◊}'],
  ['stop', '[◊]'],
  ['modalities', '[◊]'],
  ['audio', '{"voice":◊}'],
  ['prediction', '{"type":"content","content":◊}'],
  ['functions', '[{"name":◊}]'],
  ['function_call', '{"name":◊}'],
  ['reasoning', '◊'],
  ['reasoning', '{"max_tokens":◊}'],
  ['reasoning', '{"effort":◊}'],
  ['thinking', '◊'],
]

const MESSAGES: readonly Hole[] = [
  ['messages', '[◊]'],
  ['messages', '[{"role":"user","content":"hi"},◊]'],
  ['messages', '[{"role":◊,"content":"hi"}]'],
  ['messages', '[{"role":"user","content":◊}]'],
  block('◊'),
  block('{"type":◊,"text":"t"}'),
  block('{"type":"text","text":◊}'),
  block('{"type":"text","text":"t","cache_control":◊}'),
  block('{"type":"text","text":"t","cache_control":{"type":◊}}'),
  block('{"type":"text","text":"t","cache_control":{"type":"ephemeral","ttl":◊}}'),
  block('{"type":"image","source":◊}'),
  block('{"type":"image","source":{"type":◊}}'),
  block('{"type":"image","source":{"type":"base64","media_type":◊,"data":"AAAA"}}'),
  block('{"type":"image","source":{"type":"base64","media_type":"image/png","data":◊}}'),
  block('{"type":"image","source":{"type":"url","url":◊}}'),
  block('{"type":"document","source":◊}'),
  block('{"type":"document","source":{"type":"text","media_type":"text/plain","data":◊}}'),
  block('{"type":"document","source":{"type":"text","media_type":"text/plain","data":"d"},"title":◊}'),
  block('{"type":"search_result","source":"s","title":"t","content":◊}'),
  spoken('{"type":"tool_use","id":◊,"name":"f","input":{}}'),
  spoken('{"type":"tool_use","id":"t","name":◊,"input":{}}'),
  spoken('{"type":"tool_use","id":"t","name":"f","input":◊}'),
  spoken('{"type":"thinking","thinking":◊,"signature":"s"}'),
  spoken('{"type":"thinking","thinking":"t","signature":◊}'),
  spoken('{"type":"redacted_thinking","data":◊}'),
  spoken('{"type":"server_tool_use","id":"s","name":"web_search","input":◊}'),
  result('{"type":"tool_result","tool_use_id":◊,"content":"r"}'),
  result('{"type":"tool_result","tool_use_id":"t","content":◊}'),
  result('{"type":"tool_result","tool_use_id":"t","content":[◊]}'),
  result('{"type":"tool_result","tool_use_id":"t","content":"r","is_error":◊}'),
  ['system', '[◊]'],
  ['system', '[{"type":◊,"text":"s"}]'],
  ['system', '[{"type":"text","text":◊}]'],
  ['system', '[{"type":"text","text":"s","cache_control":◊}]'],
  ['tools', '[◊]'],
  ['tools', '[{"name":◊,"input_schema":{"type":"object"}}]'],
  ['tools', '[{"name":"f","description":◊,"input_schema":{"type":"object"}}]'],
  ['tools', '[{"name":"f","input_schema":◊}]'],
  ['tools', '[{"type":◊,"name":"f","input_schema":{"type":"object"}}]'],
  ['tools', '[{"type":"web_search_20250305","name":"web_search","max_uses":◊}]'],
  ['tool_choice', '{"type":◊}'],
  ['tool_choice', '{"type":"tool","name":◊}'],
  ['tool_choice', '{"type":"auto","disable_parallel_tool_use":◊}'],
  ['thinking', '{"type":◊}'],
  ['thinking', '{"type":"enabled","budget_tokens":◊}'],
  ['metadata', '{"user_id":◊}'],
  ['cache_control', '{"type":◊}'],
  ['stop_sequences', '[◊]'],
]

/** Messages, parts, blocks, tools and options with values of every kind in each position. */
export function shapes(): Case[] {
  return [...filled('chat', CHAT), ...filled('messages', MESSAGES)]
}

function filled(protocol: PairedProtocol, holes: readonly Hole[]): Case[] {
  return holes.flatMap(([field, template]) =>
    VALUES.map((value, i): Case => {
      const member: MemberText = [field, template.replace('◊', () => value)]
      // Every second case is a stream, so that both forms of response are covered.
      const stream: readonly MemberText[] = i % 2 === 1 ? [['stream', 'true']] : []
      return {
        name: `${field} ${member[1]}`,
        protocols: [protocol],
        outcome: 'either',
        body: (model) => requestText(protocol, model, member, ...stream),
      }
    }),
  )
}
