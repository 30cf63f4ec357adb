import fc from 'fast-check'
import type { ConversionProtocol } from '../../src/protocols/conversation.ts'
import { chatRequests, messagesRequests } from '../generators/requests.ts'
import { VALUES } from './values.ts'

